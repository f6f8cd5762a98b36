"""A solver as a command: HiGHS through highspy with two kinds of output, and ways for a command to fail.

milp_command.py FILE SOLUTION [--mode MODE] [--time S] [--style highs|plain] [--gap G]
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?")
    parser.add_argument("solution", nargs="?", type=Path)
    parser.add_argument("--mode", default="solve")
    parser.add_argument("--time", type=float, default=1e7)
    parser.add_argument("--style", default="plain")
    parser.add_argument("--gap", type=float)
    parser.add_argument("--child", type=Path)
    parser.add_argument("--version", action="store_true")
    asked = parser.parse_args()
    if asked.version:
        print("milp command\nversion 1.2.3")
        return 0
    if asked.mode == "crash":
        print("cannot allocate the basis")
        return 7
    if asked.mode == "die":
        os.kill(os.getpid(), 9)
    if asked.mode == "silent":
        return 0
    if asked.mode == "garbage":
        asked.solution.write_text("this is no solution\n")
        return 0
    if asked.mode == "strange":
        asked.solution.write_text("somebody 1\n")
        return 0
    if asked.mode == "infeasible":
        print("the problem has no feasible point")
        return 1
    if asked.child is not None:
        wait = [sys.executable, "-c", "import time; time.sleep(600)"]
        child = subprocess.Popen(wait, start_new_session=True)
        asked.child.write_text(str(child.pid))
    if asked.mode == "zero":  # a feasible point, then nothing more
        asked.solution.write_text("x0 0\n")
        time.sleep(600)
    if asked.mode == "sleep":
        time.sleep(600)
    return highs(asked) if asked.style == "highs" else plain(asked)


def read(file):
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(file) == highspy.HighsStatus.kOk
    return highs


def highs(asked):
    highs = read(asked.file)
    highs.setOptionValue("output_flag", True)
    highs.setOptionValue("time_limit", asked.time)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.run()
    highs.writeSolution(str(asked.solution), 0)
    return 0


def plain(asked):
    import highspy

    highs = read(asked.file)
    highs.setOptionValue("presolve", "off")  # which may leave open whether a problem is infeasible or unbounded
    highs.setOptionValue("time_limit", min(asked.time, 1e7))
    if asked.gap is not None:
        highs.setOptionValue("mip_rel_gap", asked.gap)
    highs.run()
    status = highs.getModelStatus()
    print(f"the problem is {highs.modelStatusToString(status).lower()}")
    if highs.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return {highspy.HighsModelStatus.kInfeasible: 2}.get(status, 1)
    if status == highspy.HighsModelStatus.kUnbounded:
        return 3
    names, values = highs.getLp().col_names_, highs.getSolution().col_value
    asked.solution.write_text("".join(f"{n} {v!r}\n" for n, v in zip(names, values, strict=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
