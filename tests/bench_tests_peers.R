# Two-sided sign-flip p of pairs by perm.test of exactRankTests; bench_tests.py starts and times it.
#
#     Rscript bench_tests_peers.R VALUES.csv PAIRS.csv RESULT.csv SECONDS REPEAT
#
# VALUES: right answers, one model a row; PAIRS: two rows of VALUES, from 0. RESULT gets p, one a line, NA where the
# time was over. Standard output gets JSON: the least time of the calls alone, and the share of the pairs done.

suppressMessages(suppressWarnings(library(exactRankTests)))
args <- commandArgs(trailingOnly = TRUE)
table_of <- function(file) matrix(scan(file, sep = ",", quiet = TRUE), nrow = length(readLines(file)), byrow = TRUE)
now <- function() as.numeric(Sys.time())
values <- table_of(args[1])
pairs <- table_of(args[2]) + 1
limit <- as.numeric(args[4])
set.seed(1)
order <- sample(nrow(pairs))
p <- rep(NA_real_, nrow(pairs))

best <- Inf
for (turn in seq_len(as.integer(args[5]))) {
  done <- 0
  start <- now()
  for (i in order) {
    d <- values[pairs[i, 1], ] - values[pairs[i, 2], ]
    d <- d[d != 0] # fewer terms, the same p
    p[i] <- if (length(d)) perm.test(d, paired = TRUE, exact = TRUE)$p.value else 1
    done <- done + 1
    if (done %% 100 == 0 && now() - start > limit) break
  }
  best <- min(best, (now() - start) / done * nrow(pairs))
}
writeLines(ifelse(is.na(p), "nan", sprintf("%.17g", p)), args[3])
share <- done / nrow(pairs)
cat(sprintf('{"seconds": %.6g, "share": %.6g}\n', best * share, share))
