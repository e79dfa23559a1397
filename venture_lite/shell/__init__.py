"""What a person runs: `cli` the command, `workers` and `chain_process` its processes, `printer` and `report` what it
writes; `notebook` the cells, `data` and `tables` the files of data, `streams` the process's streams.
"""
