"""The whole engine in a small world made by a seed.

`workload` draws the jobs and says which instants to expect; `troubles` draws what goes wrong; `world` lives it with the
real engine on a store that fails on purpose; `checker` compares what is recorded with what had to happen.
"""
