"""The fast ways: transitions prepared once, where structure stays (`formed`) or follows one value (`reassign`). Each
gives what the interpreter gives, and hands back to it what it cannot do; taking this room out changes speed alone.
"""
