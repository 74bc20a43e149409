"""Content of a release: metadata and the gaps in them that only the publisher can
close, the recipe for conda, and the workflow."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / "tools" / "release"
GAPS = [
    "authors", "conda_maintainers", "documentation", "maintainers", "repository",
    "security", "urls",
]  # fmt: skip
KNOWN = """
repository = "https://example.org/a/b"
documentation = "https://example.org/docs"
authors = [{ name = "Ann \\"A\\" Author", email = "ann@example.org" }, { name = "Bob" }]
maintainers = [{ name = "Bob" }]
security = "security@example.org"
conda_maintainers = ["ann", "bob"]
"""
FILES = [
    "pyproject.toml", "CITATION.cff", "SECURITY.md", "README.md", "meson.build",
    "recipe/recipe.yaml", "tools/release/publisher.toml",
]  # fmt: skip


def read(file, root=ROOT):
    return (root / file).read_text(encoding="utf-8")


def run(script, *arguments):
    return subprocess.run(
        [sys.executable, str(TOOLS / script), *map(str, arguments)],
        text=True, capture_output=True,
    )  # fmt: skip


@pytest.fixture
def copy(tmp_path):
    """The files that have gaps, in a folder, with nothing known of the publisher."""
    for file in FILES:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(read(file), encoding="utf-8")
    known = re.sub(r"^(\w+) = .*", r'\1 = ""', read(FILES[-1]), flags=re.MULTILINE)
    (tmp_path / "tools/release/publisher.toml").write_text(known)
    return tmp_path


def test_open_gaps_are_listed_and_end_a_release(copy):
    done = run("gaps.py", "--root", copy, "--fill")
    assert done.returncode == 1
    assert re.findall(r"^open: (\w+) of", done.stdout, re.MULTILINE) == GAPS
    for file in FILES:  # nothing is put in the place of what nobody has given
        assert read(file, copy) == read(file) or file.endswith("publisher.toml")


@pytest.fixture
def released(copy):
    """The same as a release has them, where all is known."""
    (copy / "tools/release/publisher.toml").write_text(KNOWN)
    (copy / "archive.tar.gz").write_bytes(b"an archive")
    done = run("gaps.py", "--root", copy, "--fill", "--sdist", copy / "archive.tar.gz")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    return copy


def test_gaps_are_filled(released):
    project = tomllib.loads(read("pyproject.toml", released))["project"]
    ann = {"name": 'Ann "A" Author', "email": "ann@example.org"}
    assert project["authors"] == [ann, {"name": "Bob"}]
    assert project["maintainers"] == [{"name": "Bob"}]
    assert project["urls"]["Source"] == "https://example.org/a/b"
    assert project["urls"]["Documentation"] == "https://example.org/docs"
    before = tomllib.loads(read("pyproject.toml"))["project"]
    assert before == {key: project[key] for key in before}

    cited = yaml.safe_load(read("CITATION.cff", released))
    assert [author["name"] for author in cited["authors"]] == ['Ann "A" Author', "Bob"]
    assert cited["repository-code"] == "https://example.org/a/b"

    assert "Write to security@example.org." in read("SECURITY.md", released)

    recipe = yaml.safe_load(read("recipe/recipe.yaml", released))
    assert recipe["extra"]["recipe-maintainers"] == ["ann", "bob"]
    assert recipe["about"]["repository"] == "https://example.org/a/b"
    digest = "9e691d5adacf0e102f203100842ffaba4e2a7dfe3dbd536827d3c0db8c7e88f1"
    assert recipe["source"]["sha256"] == digest

    for file in FILES:
        assert "GAP" not in read(file, released) or file == "recipe/recipe.yaml"


def test_links_of_the_readme_lead_from_the_package_index_to_the_tag(released):
    version = run("gaps.py", "--version").stdout.strip()
    before = re.findall(r"\]\(([^)]+)\)", read("README.md"))
    links = re.findall(r"\]\(([^)]+)\)", read("README.md", released))
    assert len(links) == len(before) > 20
    base = f"https://example.org/a/b/blob/v{version}/"
    for old, new in zip(before, links, strict=True):
        assert new == (old if old.startswith("https:") else base + old)
        assert old.startswith("https:") or (ROOT / old.partition("#")[0]).exists()


def test_versions_agree_and_the_papers_are_cited():
    version = run("gaps.py", "--version").stdout.strip()
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    assert str(yaml.safe_load(read("CITATION.cff"))["version"]) == version
    assert yaml.safe_load(read("recipe/recipe.yaml"))["context"]["version"] == version
    papers = yaml.safe_load(read("CITATION.cff"))["references"]
    assert len(papers) == 5
    assert all(paper["title"] and paper["authors"] for paper in papers)
    assert sorted(paper["year"] for paper in papers) == [2005, 2007, 2014, 2017, 2020]


def test_the_recipe_asks_for_what_the_package_does():
    recipe = yaml.safe_load(read("recipe/recipe.yaml"))
    pyproject = tomllib.loads(read("pyproject.toml"))
    project, needs = pyproject["project"], recipe["requirements"]

    def plain(requirements):
        return {re.sub(r"[\s\"]", "", str(one)).lower() for one in requirements}

    assert plain(project["dependencies"]) <= plain(needs["run"])
    assert plain(pyproject["build-system"]["requires"]) <= plain(needs["host"])
    extras = project["optional-dependencies"]
    names = ("plot", "sklearn", "trees", "parquet", "formula", "dask")
    wanted = plain(one for name in names for one in extras[name])
    constraints = {one.replace("-base", "") for one in plain(needs["run_constraints"])}
    assert {one.replace("[distributed]", "") for one in wanted} <= constraints
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["license_file"] == project["license-files"]
    assert recipe["about"]["summary"] == project["description"]
    python, commands = recipe["tests"]
    assert python["python"]["pip_check"]
    assert any("ordinal compare" in line for line in commands["script"])


def test_the_workflow_can_publish_only_in_its_last_job():
    workflow = yaml.safe_load(read(".github/workflows/release.yml"))
    jobs = workflow["jobs"]
    writes = [name for name in jobs if "id-token" in jobs[name].get("permissions", {})]
    assert workflow["permissions"] == {"contents": "read"}
    assert writes == ["publish"]
    assert jobs["publish"]["environment"]["name"] == "pypi"
    assert jobs["publish"]["needs"] == "check"
    for job in jobs.values():
        for step in job["steps"]:
            # what a release runs is there
            for tool in re.findall(r"tools/release/[\w.]+", step.get("run", "")):
                assert (ROOT / tool).exists(), tool


@pytest.mark.parametrize(
    ("size", "beside", "code"),
    [(800_000, 10**7, 0), (800_001, 0, 1), (0, 10, 1)],
    ids=["small", "large", "nothing compiled"],
)
def test_large_wheels_end_a_release(size, beside, code, tmp_path):
    wheel = tmp_path / "ordinal_regression-1-cp311-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:  # packed as they are
        archive.writestr("ordinal/_solvers/_a.abi3.so", bytes(size // 2))
        archive.writestr("ordinal/_solvers/_b.pyd", bytes(size - size // 2))
        archive.writestr("ordinal/_solvers/_a.pyi", bytes(100))
        archive.writestr("ordinal_regression.libs/libgomp-1.so.1.0.0", bytes(beside))
    done = run("size.py", wheel)
    assert done.returncode == code
    assert f"{size} of extension modules" in done.stdout
    assert f"{beside} of libraries" in done.stdout
