"""Runs a program, and prints its CPU seconds, user and system.

    processor_seconds.py PROGRAM ARGUMENT...
"""
import resource
import subprocess
import sys

subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(f"{used.ru_utime + used.ru_stime:.2f}")
