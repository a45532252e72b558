"""Run a command within limits of processor seconds and GB; JSON of what it said and used goes to stdout.

Linux lets a program begin with the peak of memory of the process that starts it, so this is a small one.
"""

import json
import resource
import subprocess
import sys

seconds, size = int(sys.argv[1]), int(sys.argv[2]) << 30
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))  # of every process that it starts
resource.setrlimit(resource.RLIMIT_AS, (size, size))
ended = subprocess.run(sys.argv[3:], capture_output=True, text=True, errors="replace")
used = resource.getrusage(resource.RUSAGE_CHILDREN)
found = {
    "exit": ended.returncode,
    "seconds": used.ru_utime + used.ru_stime,
    "peak_mb": used.ru_maxrss / 1024,
    "said": ended.stdout,
    "error": ended.stderr,
}
json.dump(found, sys.stdout)
