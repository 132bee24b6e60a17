# Exact p-values of R for tests/test_flips_reference.py: writes tests/data/perm_test.json.
#
#     Rscript tests/reference/perm_test.R tests/data      (Debian: r-base-core, r-cran-exactranktests)
#
# perm.test(x, y, paired = TRUE, exact = TRUE) of exactRankTests counts the 2^m sign patterns of the m differences
# x - y by the shift algorithm of Streitberg and Roehmel (1986), with T the sum of the positive ones:
# greater P(T >= t), less P(T <= t), two-sided min(1, 2 P(T <= t)) or min(1, 2 P(T >= t)), whichever tail is smaller;
# ties with t count. A zero doubles patterns and those in the tail alike, so it changes no p. Since T is symmetric,
# this is the share of patterns whose sum is as extreme as the observed one, which this script checks by listing them
# all where there are at most 16. Beyond 1,023 differences, zeros among them, 2^m overflows and it answers 0.
#
# binom.test gives the exact McNemar test where every difference is -1, 0 or 1.

suppressMessages(suppressWarnings(library(exactRankTests)))
folder <- commandArgs(trailingOnly = TRUE)[1]
sides <- c("two.sided", "greater", "less")

# ---- the data: x and y, integers, one an item

set <- function(about, x, y = 0 * x) list(about = about, x = x, y = y)

aime <- read.csv(file.path(folder, "aime2025_I.csv"))
correct <- function(model) {
  rows <- aime[aime$model == model, ]
  stopifnot(nrow(rows) == 15, rows$attempts == 4)
  rows$correct[order(rows$item)]
}
of_aime <- function(a, b) set(paste0("AIME 2025 I, right answers of 4: ", a, " and ", b), correct(a), correct(b))

wide <- read.csv(file.path(folder, "math500.csv.gz"), check.names = FALSE)
math <- as.matrix(wide[, -1])
rownames(math) <- wide$model
shots <- function(model) math[paste0(model, "_zero_shot"), ] + math[paste0(model, "_one_shot"), ]
tens <- function(row) colSums(matrix(math[row, ], nrow = 10))
of_math <- function(a, b) set(paste0("MATH-500: ", a, " and ", b), math[a, ], math[b, ])

crossed <- c(188, 96, 168, 176, 153, 172, 177, 163, 146, 173, 186, 168, 177, 184, 96)
selfed <- c(139, 163, 160, 160, 147, 149, 149, 122, 132, 144, 130, 144, 102, 124, 144)

set.seed(1, kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection")
ease <- rbeta(900, 1, 1)
many <- set(
  "simulated: 900 items, right answers of 16", rbinom(900, 16, 0.02 + 0.96 * ease), rbinom(900, 16, 0.96 * ease)
)

sets <- list(
  maize = set("Zea mays, crossed and self-fertilised, eighths of an inch (Darwin 1876)", crossed, selfed),
  one = set("one item", 1),
  all_up = set("20 items, all one way", rep(1, 20)),
  units = set("10 items, seven up and three down", c(1, 1, -1, 1, 1, -1, 1, 1, -1, 1)),
  balanced = set("the sum is 0", c(3, -2, -1, 4, -4)),
  all_zero = set("no item differs", rep(0, 6)),
  zeros = set("five of ten items differ", c(0, 3, 0, -1, 2, 0, 0, 2, -1, 0)),
  zeros_left_out = set("the same five", c(3, -1, 2, 2, -1)),
  ties = set("many equal sizes", c(2, 2, 2, -2, 2, 2, 1, 1, -1, 1, -2, 1)),
  negative = set("mostly down", c(-5, -3, 1, -4, 2, -2, -6)),
  aime_top = of_aime("o3-mini (high)", "o1 (medium)"),
  aime_near = of_aime("DeepSeek-R1-Distill-Llama-70B", "DeepSeek-R1-Distill-Qwen-32B"),
  aime_far = of_aime("o3-mini (high)", "QwQ-32B-Preview"),
  aime_down = of_aime("gpt-4o", "o3-mini (medium)"),
  math_near = of_math("Qwen_Qwen3_32B_zero_shot", "zai_org_GLM_4_32B_0414_one_shot"),
  math_shots = of_math("Qwen_Qwen3_14B_one_shot", "Qwen_Qwen3_14B_zero_shot"),
  math_far = of_math("LLM360_K2_Think_one_shot", "Qwen_Qwen2.5_7B_Instruct_zero_shot"),
  math_both_shots = set(
    "MATH-500, right answers of 2: Qwen_QwQ_32B and Qwen_Qwen3_8B", shots("Qwen_QwQ_32B"), shots("Qwen_Qwen3_8B")
  ),
  math_tens = set(
    "MATH-500, right answers in 50 groups of 10 items: Qwen_Qwen3_32B_zero_shot and openai_gpt_oss_20b_one_shot",
    tens("Qwen_Qwen3_32B_zero_shot"), tens("openai_gpt_oss_20b_one_shot")
  ),
  many = many
)

# ---- the p-values

listed <- function(d, side) {
  sums <- 0
  for (size in abs(d[d != 0])) sums <- c(sums + size, sums - size)
  mean(switch(side, two.sided = abs(sums) >= abs(sum(d)), greater = sums >= sum(d), less = sums <= sum(d)))
}

values <- function(test) vapply(sides, test, 0)
named <- function(p) sprintf('{"two-sided": %.17g, "greater": %.17g, "less": %.17g}', p[1], p[2], p[3])

entry <- function(name) {
  x <- unname(sets[[name]]$x)
  y <- unname(sets[[name]]$y)
  d <- x - y
  stopifnot(d == round(d))
  p <- values(function(side) perm.test(x, y, paired = TRUE, exact = TRUE, alternative = side)$p.value)
  if (sum(d != 0) <= 16) stopifnot(abs(p - values(function(side) listed(d, side))) < 1e-14)
  mcnemar <- "null"
  if (all(abs(d) <= 1) && any(d != 0)) {
    mcnemar <- named(values(function(side) binom.test(sum(d > 0), sum(d != 0), alternative = side)$p.value))
  }
  sprintf(
    '  "%s": {\n   "about": "%s",\n   "d": [%s],\n   "perm_test": %s,\n   "mcnemar": %s\n  }',
    name, sets[[name]]$about, paste(d, collapse = ","), named(p), mcnemar
  )
}

text <- sprintf(
  '{\n "versions": {"R": "%s", "exactRankTests": "%s"},\n "sets": {\n%s\n }\n}',
  getRversion(), packageVersion("exactRankTests"), paste(vapply(names(sets), entry, ""), collapse = ",\n")
)
writeLines(text, file.path(folder, "perm_test.json"))
