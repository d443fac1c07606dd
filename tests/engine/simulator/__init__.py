"""The whole engine on a machine made by a seed.

`workload` draws the jobs and what their processes do; `expected_schedule` says which instants to expect; `faults` draws
what goes wrong; `faulty_machine` is the machine, on a store that fails on purpose (`observed_store` below it watches every
commit); `checker` compares what is recorded with what had to happen; `campaign` runs one seed.
"""
