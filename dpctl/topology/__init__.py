"""Pure topology arithmetic: alignment verdicts over NUMA node sets."""
