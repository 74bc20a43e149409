"""Compiled kernels, a stub each. Private: arguments are trusted."""
