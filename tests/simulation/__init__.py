"""The whole service in one process and on virtual time, with faults by seeded chance.

The real handlers run with their real wiring on moto. Only one thing happens at a time, and what
comes next is decided by virtual time and by the seed: a run can be repeated.
"""
