"""`make adapters`: every suite and program, or those named; tells what passed, and what was skipped and why."""

import pkgutil
import sys
from importlib import import_module

from tests.adapters import suites, user_programs
from tests.adapters.suite import Suite


def named_suites() -> dict[str, Suite]:
    """Every suite by its name."""
    names = [module.name for module in pkgutil.iter_modules(suites.__path__)]
    return {name.replace("_", "-"): import_module(f"tests.adapters.suites.{name}").SUITE for name in names}


def run_suites(wanted: dict[str, Suite]) -> bool:
    """Whether all of them passed."""
    all_passed = True
    for name, suite in wanted.items():
        if why_not := suite.why_not():
            print(f"{name}: skipped: {why_not}", flush=True)
            continue
        outcome = suite.run()
        if outcome.failed or not outcome.passed:
            all_passed = False
            print(outcome.output)
        print("\n".join(outcome.lines(name)), flush=True)
    return all_passed


def run_programs(wanted: list[str]) -> bool:
    """Whether all of them ended well."""
    ended = user_programs.run(wanted) if wanted else {}
    for name, done in ended.items():
        print(f"program {name}: {'ended well' if done.returncode == 0 else f'FAILED ({done.returncode})'}")
        if done.returncode:
            print(done.stdout, flush=True)
        for line in done.stdout.splitlines():
            if line.startswith("told: "):
                print(f"  {line.removeprefix('told: ')}")
    return not any(done.returncode for done in ended.values())


def main(wanted: list[str]) -> int:
    suites_by_name = named_suites()
    programs = user_programs.programs()
    if unknown := set(wanted) - {*suites_by_name, *programs}:
        known = ", ".join([*suites_by_name, *programs])
        print(f"There is no {', '.join(sorted(unknown))}: there are {known}", file=sys.stderr)
        return 2
    passed = run_suites({name: suite for name, suite in suites_by_name.items() if not wanted or name in wanted})
    ended = run_programs([name for name in programs if not wanted or name in wanted])
    return 0 if passed and ended else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
