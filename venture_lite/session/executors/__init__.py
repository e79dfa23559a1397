"""Chains of a session that run where an executor of `concurrent.futures` lets them: in other processes, on other
machines.

An executor runs functions, and has no way to talk to one that runs. So what runs there (`member.py`) calls back
(`contact.py`), is given chains to run (`parcel.py`), and tells what they give; who heard it last is `crew.py`.
"""
