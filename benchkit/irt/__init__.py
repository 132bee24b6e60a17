"""Item response theory: how hard each item is and how able each model is, on one scale.

``model``        the data, the priors and the checks of both
``laplace``      the mode, its curvature and empirical-Bayes hyperparameters (numpy only)
``geometry``     the whitening map that the sampler works in, its constants from the mode (numpy only)
``program``      the log density and the NUTS step as one compiled JAX program
``sampler``      JAX's settings, the caches and the chains
``diagnostics``  split R-hat, bulk and tail ESS, E-BFMI (numpy only)
``summary``      draws or a Laplace approximation -> means, sds, bounds (numpy only)
``conditional``  exact draws of one side given the other; ``conditional_beta`` of beta-binomial counts (numpy only)
``two``          the 2PL's centre and curvature, ``geometry_two`` and ``density_two`` its map and log density
``marginal``     the posterior of a standard deviation (numpy only)
``anchor``       new items, or new models, for a fit that stays as it is (numpy only)
``fit``          the one function that callers need
"""
