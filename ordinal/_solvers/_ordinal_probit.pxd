"""Moments of a truncated normal variable, for likelihoods with a probit link."""


cdef struct Interval:                    # a standard normal t on [z2, z1]
    double z2, z1
    double log_mass
    double mean, variance, third         # third central moment
    double upper, lower                  # density at z1, z2 over the mass
    double above, below                  # z1 - mean, mean - z2
    double shortfall                     # 1 - variance


cdef Interval interval(double z2, double z1, double width) noexcept nogil
