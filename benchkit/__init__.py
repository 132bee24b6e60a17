"""benchkit: Unix filters that turn raw results of AI benchmarks into answers a person can act on."""

__version__ = "0.1.0"
