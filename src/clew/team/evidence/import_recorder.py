"""Source of a module that Python loads at its start in a check. At the end of the process it writes the files of all
loaded modules beside itself, so that a receipt can tell which changed files a test run imported."""

SOURCE = """
import atexit, json, os, sys

def _write(folder=os.path.join(os.path.dirname(os.path.abspath(__file__)), "imported")):
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    names = sorted(os.path.realpath(name) for name in files if isinstance(name, str))
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "%d.json" % os.getpid()), "w") as out:
            json.dump(names, out)
    except OSError:
        pass

atexit.register(_write)
"""
