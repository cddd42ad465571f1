"""Workflows of the forge run the same make targets as a contributor, with pinned actions and
minimal rights."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from samtranslator.yaml_helper import yaml_parse

from duewheel import __version__
from tests.support.cases import each_case

ROOT = Path(__file__).parents[1]
TEXTS = {p.name: p.read_text("utf-8") for p in (ROOT / ".github" / "workflows").iterdir()}
WORKFLOWS: dict[str, dict[str, Any]] = {name: yaml_parse(t) for name, t in TEXTS.items()}
JOBS: dict[str, dict[str, Any]] = {
    f"{name}:{job}": body
    for name, found in WORKFLOWS.items()
    for job, body in found["jobs"].items()
}
RECIPES = (ROOT / "Makefile").read_text("utf-8") + (ROOT / "infra/build.mk").read_text("utf-8")
VERBS = set(re.findall(r"^([a-z-]+):", RECIPES, re.MULTILINE))


def steps(job: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = job.get("steps", [])
    return found


def made(text: str) -> set[str]:
    return set(re.findall(r"\bmake ([a-z-]+)", text))


def commands(workflow: str) -> str:
    jobs = WORKFLOWS[workflow]["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in steps(job))


def test_the_forge_runs_the_checks_of_a_contributor_and_those_with_a_machine_of_their_own() -> None:
    handed_in = made((ROOT / ".ci" / "run").read_text("utf-8"))
    assert made(commands("check.yml")) == handed_in | {"fresh", "deploy-emulated"}


@each_case("workflow", WORKFLOWS)
def test_every_verb_that_is_run_exists(workflow: str) -> None:
    verbs = made(commands(workflow))
    assert verbs
    assert verbs <= VERBS


def test_the_tests_run_on_the_oldest_python_and_on_lambdas() -> None:
    assert WORKFLOWS["check.yml"]["jobs"]["test"]["strategy"]["matrix"]["python"] == [
        "3.11",
        "3.13",
    ]


@each_case("text", TEXTS.values())
def test_actions_of_others_are_pinned_to_commits_with_their_versions(text: str) -> None:
    used = re.findall(r"^ *(?:- )?uses: (.+)$", text, re.MULTILINE)
    assert used
    for one in used:
        own = one.startswith("./.github/workflows/")
        assert own or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one


def test_an_action_has_the_same_version_everywhere() -> None:
    used = re.findall(r"uses: ([\w-]+/[\w-]+)@(\w+)", "".join(TEXTS.values()))
    assert len({name for name, _ in used}) == len(set(used))


@each_case("job", JOBS.values())
def test_a_job_has_a_timeout(job: dict[str, Any]) -> None:
    assert "uses" in job or job["timeout-minutes"] <= 60


def test_a_job_declares_exactly_the_rights_that_it_needs() -> None:
    assert WORKFLOWS["check.yml"]["permissions"] == {"contents": "read"}
    assert WORKFLOWS["release.yml"]["permissions"] == {}
    rights = {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job}
    reading, by_oidc = {"contents": "read"}, {"contents": "read", "id-token": "write"}
    assert rights == {
        "release.yml:check": reading,
        "release.yml:artefacts": reading,
        "release.yml:publish": {"contents": "write", "id-token": "write", "attestations": "write"},
        "release.yml:staging": by_oidc,
        "release.yml:prod": by_oidc,
    }


@each_case("job", JOBS.values())
def test_no_credentials_are_left_in_a_checkout(job: dict[str, Any]) -> None:
    for step in steps(job):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_no_text_of_others_is_inserted_into_a_shell_command() -> None:
    """An expression in a command is inserted before the shell reads the command."""
    for workflow in WORKFLOWS:
        assert "${{" not in commands(workflow)
    assert not any("pull_request_target" in text for text in TEXTS.values())
    assert not any("${{ secrets" in text for text in TEXTS.values())


def test_a_deployment_to_production_follows_checks_staging_and_approval() -> None:
    jobs = WORKFLOWS["release.yml"]["jobs"]
    assert set(jobs["staging"]["needs"]) == set(jobs["publish"]["needs"]) == {"check", "artefacts"}
    assert jobs["prod"]["needs"] == ["staging"]
    for name in ("staging", "prod"):
        assert jobs[name]["environment"] == name
        assert jobs[name]["if"] == "vars.DEPLOY == 'on'"
        assert made(steps(jobs[name])[-1]["run"]) == {"deploy-package"}
        assert f"ENV={name} " in steps(jobs[name])[-1]["run"]


def test_publishing_does_not_wait_for_an_approval() -> None:
    """A concurrency group keeps one run waiting, and cancels it when the next one comes. A job
    outside of groups is never cancelled."""
    release = WORKFLOWS["release.yml"]
    assert "concurrency" not in release
    held = {
        name: job["concurrency"] for name, job in release["jobs"].items() if "concurrency" in job
    }
    assert held == {
        name: {"group": name, "cancel-in-progress": False} for name in ("staging", "prod")
    }


def test_every_file_that_is_published_has_an_attestation_of_the_workflow_that_built_it() -> None:
    """It is made after the files were checked against their sums, and before they are published."""
    checked, attested, published = steps(WORKFLOWS["release.yml"]["jobs"]["publish"])[1:]
    assert checked["run"] == "sha256sum --check --strict SHA256SUMS"
    assert attested["uses"].startswith("actions/attest-build-provenance@")
    assert attested["with"] == {"subject-path": "build/release/*"}
    assert published["run"].endswith(" build/release/*")


def named(found: list[dict[str, Any]], name: str) -> str:
    (command,) = (step["run"] for step in found if step.get("name") == name)
    return str(command)


@each_case("name", [f"v{__version__}", f"v{__version__}1", f"x{__version__}", "v"])
def test_a_tag_that_is_not_of_the_version_is_not_built(name: str) -> None:
    command = named(steps(JOBS["release.yml:artefacts"]), "The tag is the version's")
    env = {**os.environ, "GITHUB_REF_NAME": name}
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=env, check=False)
    assert (done.returncode == 0) == (name == f"v{__version__}")


def test_a_commit_that_is_not_on_main_is_neither_published_nor_deployed(tmp_path: Path) -> None:
    jobs = WORKFLOWS["release.yml"]["jobs"]
    found = steps(jobs["artefacts"])
    assert found[0]["with"]["fetch-depth"] == 0
    command = named(found, "The tag is on main")
    assert all("artefacts" in jobs[name]["needs"] for name in ("publish", "staging"))

    def git(*arguments: str) -> None:
        named = ["git", "-c", "user.name=someone", "-c", "user.email=someone"]
        subprocess.run([*named, *arguments], cwd=tmp_path, check=True)

    def answer() -> int:
        return subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False).returncode

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message", "On main")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    assert answer() == 0
    git("commit", "--quiet", "--allow-empty", "--message", "Elsewhere")
    assert answer() == 1
