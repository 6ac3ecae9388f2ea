"""What each key does, over a captured node, without a terminal."""

from __future__ import annotations

import pytest

from dpctl.inventory.rows import ContainerRow, ResourceState
from dpctl.tui.dashboard import Dashboard
from dpctl.tui.facts import Facts, Reading
from dpctl.tui.pages import PAGES, find_page, page_names
from dpctl.tui.plan import Job
from dpctl.tui.proposal import Changes, Proposal, Result
from dpctl.views.leftovers import SOCKET_CHANGES
from tests.tui.boards import NAMES, board, facts_of, press, text


@pytest.mark.parametrize("capture", NAMES)
@pytest.mark.parametrize("page", page_names())
@pytest.mark.parametrize("size", [(80, 24), (200, 60), (40, 10)])
def test_every_page_fills_the_screen(capture: str, page: str, size: tuple[int, int]) -> None:
    columns, lines = size
    made = board(page, capture=capture)
    found = made.lines(columns, lines, 0.0)
    assert len(found) == lines
    shown = text(made, columns, lines)
    assert f"[{page}]" in shown or columns < 80
    assert "captured" in shown


@pytest.mark.parametrize("size", [(1, 1), (39, 24), (80, 9)])
def test_a_terminal_that_is_too_small_is_told(size: tuple[int, int]) -> None:
    shown = text(board(), *size)
    assert "the terminal is too small"[: size[0] - 1] in shown
    assert size[0] < 10 or "40 by 10 at least" in " ".join(shown.split())


@pytest.mark.parametrize("page", page_names())
def test_pages_by_number_by_name_and_by_tab(page: str) -> None:
    number = page_names().index(page) + 1
    assert press(board(), str(number)).page.name == page
    assert press(board(), ":", page, "enter").page.name == page
    assert press(board(), ":", page[:4], "tab", "enter").page.name == page
    assert press(board(), *["tab"] * (number - 1)).page.name == page
    assert press(board(page), "tab", "shift+tab").page.name == page


@pytest.mark.parametrize(
    ("word", "page"),
    [("po", "pods"), ("dev", "devices"), ("topo", "numa"), ("keys", "node"), ("FAIL", "failed")],
)
def test_short_names_of_pages(word: str, page: str) -> None:
    found = find_page(word)
    assert found is not None
    assert found.name == page


def test_no_word_means_two_pages() -> None:
    words = [word for page in PAGES for word in (page.name, *page.words)]
    assert len(words) == len(set(words))


def test_a_page_that_is_not_there_is_told() -> None:
    made = press(board(), ":", "gadgets", "enter")
    assert "no page gadgets: resources, devices" in text(made)
    assert made.page.name == "resources"


def test_a_command_takes_a_filter() -> None:
    shown = text(press(board(), ":", "dev gpu-1", "enter"))
    assert "/gpu-1" in shown
    assert " › " not in shown


def test_a_filter_is_live_kept_by_enter_and_cleared_by_esc() -> None:
    made = press(board("devices"), "/", "gpu-1")
    assert "/gpu-1▏" in text(made)
    before = text(made)
    assert "gpu-0 " not in before
    press(made, "enter")
    assert "gpu-0 " not in text(made)
    press(made, "escape")
    assert "gpu-0 " in text(made)
    press(made, "/", "nothing-at-all")
    assert "no row has nothing-at-all" in text(made)
    press(made, "escape")
    assert "gpu-0 " in text(made)


def test_another_filter_begins_anew_and_up_brings_the_last_one_back() -> None:
    made = press(board("devices"), "/", "gpu-1", "enter", "/")
    assert "/▏" in text(made)
    assert "gpu-0 " in text(made)
    press(made, "gpu-0", "enter")
    assert "/gpu-0" in text(made)
    press(made, "/", "x", "up", "enter")
    assert "/gpu-0" in text(made)
    assert "gpu-1 " not in text(made)


def test_keys_in_a_prompt_are_text() -> None:
    made = press(board(), "/", "qdyw?:1")
    assert not made.quits
    assert "/qdyw?:1▏" in text(made)
    press(made, "backspace", "ctrl+w")
    assert "/▏" in text(made)
    press(made, "backspace")
    assert made.prompt is None


def test_what_is_pasted_goes_into_a_prompt_alone() -> None:
    made = board()
    made.paste("q")
    press(made, "/")
    made.paste("gp\x1b[2Ju\n")
    assert made.prompt is not None
    assert made.prompt.text == "gp[2Ju"


def test_enter_goes_deeper_and_esc_comes_back() -> None:
    made = press(board(), "/", "vendor.example/gpu", "enter", "home", "enter")
    assert " › vendor.example/gpu › devices" in text(made, 120)
    assert "gpu-0" in text(made)
    press(made, "enter")
    assert " › pods" in text(made, 160)
    press(made, "enter")
    assert "Name:" in text(made)
    press(made, "escape", "escape", "escape")
    assert " › " not in text(made)
    press(made, "escape", "escape", "escape")
    assert not made.quits


def test_describe_yaml_and_json_of_a_row() -> None:
    made = press(board("devices"), "d")
    assert "HEALTH:" in text(made)
    press(made, "y")
    assert "numaNodes:" in text(made)
    press(made, "y")
    assert '"device": "' in text(made)
    press(made, "escape", "y")
    assert "numaNodes:" in text(made)
    press(made, "escape")
    assert "[devices]" in text(made)


def test_a_pod_in_full_is_that_of_the_command() -> None:
    made = press(board("pods"), "enter")
    row = next(row for row in facts_of().rows("pods", PAGES[2].make))
    assert isinstance(row, ContainerRow)
    shown = text(made, 100, 60)
    assert f"{row.pod}\n" in shown
    assert "Containers:" in shown


def test_a_pod_as_yaml_and_json_has_all_its_rows() -> None:
    rows = facts_of().rows("pods", PAGES[2].make)
    pods = [(row.namespace, row.pod) for row in rows if isinstance(row, ContainerRow)]
    several = max(pods, key=pods.count)
    assert pods.count(several) > 1
    made = press(board("pods"), *["down"] * pods.index(several), "enter", "y")
    resources = [row.resource for row in rows if (row.namespace, row.pod) == several]
    for key in ("resource: ", '"resource": "'):
        shown = text(made, 120, 400)
        assert all(f"{key}{name}" in shown for name in resources if name)
        press(made, "y")


def test_the_numa_picture_in_three_ways() -> None:
    made = board("numa")
    assert "NUMA node 0" in text(made, 80, 40)
    press(made, "y")
    assert "numaNodes:" in text(made)
    press(made, "y", "y")
    assert "NUMA node 0" in text(made, 80, 40)


@pytest.mark.parametrize("capture", NAMES)
def test_the_keys_of_the_node_have_the_states_of_the_resources(capture: str) -> None:
    facts = facts_of(capture)
    states = {row.resource: row.state for row in facts.rows("resources", PAGES[0].make)}
    rows = facts.rows("node", PAGES[5].make)
    assert {row.resource: row.state for row in rows} == {
        r.resource: states[r.resource] for r in rows
    }
    nothing = facts.snapshot._replace(
        pod_resources=None,
        allocatable=None,
        checkpoint=None,
        directory=None,
        sockets=None,
        plugins=None,
    )
    alone = Facts(Reading(nothing, 0, 1)).rows("node", PAGES[5].make)
    assert {row.state for row in alone} == {None, ResourceState.FOREIGN, ResourceState.MALFORMED}


def test_sorting_by_a_letter_is_said() -> None:
    made = press(board("devices"), "S")
    assert "sorted by STATE" in text(made)
    assert "no column begins with Z" in text(press(made, "Z"))


def test_all_columns_or_fewer() -> None:
    made = board("devices")
    assert "SOURCES" not in text(made).splitlines()[3]
    assert "SOURCES" in text(press(made, "w"), 120).splitlines()[3]
    assert "SOURCES" not in text(press(made, "w"), 250).splitlines()[3]


def test_help_names_every_key_and_hides_changes_where_there_are_none() -> None:
    shown = text(press(board(), "?"), 100, 60)
    for key in ("Enter", "Esc", "Shift-letter", "Ctrl-R", "Ctrl-Z", "q, Ctrl-C"):
        assert key in shown
    assert "prune" not in shown
    assert "Where to look" not in text(press(board(), "?", "escape"))


@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
def test_leaving_takes_one_key(key: str) -> None:
    assert press(board(), key).quits


@pytest.mark.parametrize("keys", [("/", "gpu"), (":",), ("?",), ("d",)])
def test_ctrl_c_leaves_from_anywhere(keys: tuple[str, ...]) -> None:
    assert press(board(), *keys, "ctrl+c").quits


def test_read_now_is_asked_for() -> None:
    assert press(board(), "ctrl+r").wants_reading


def test_where_nothing_can_be_changed_the_keys_say_so() -> None:
    made = press(board("node"), "p")
    assert "nothing can be changed here: a bundle cannot be changed" in text(made)
    made = press(board("node", live=True), "x")
    assert "--readonly" in text(made)
    assert " prune " not in text(made).splitlines()[-1]


def changing(page: str) -> Dashboard:
    def planner() -> Proposal:
        raise NotImplementedError

    changes = Changes(planner, lambda name: planner, planner, planner)
    return board(page, changes=changes, live=True)


def test_x_and_p_say_where_they_work_and_what_is_missing() -> None:
    assert "no row is selected" in text(press(changing("node"), "/", "no such", "enter", "x"))
    assert " x works on resources and node" in text(press(changing("plugins"), "x"))
    assert " p works on resources, node, plugins and failed" in text(press(changing("pods"), "p"))


@pytest.mark.parametrize("page", ["resources", "node", "plugins", "failed"])
def test_the_foot_has_the_keys_that_change_something(page: str) -> None:
    foot = text(changing(page)).splitlines()[-1]
    assert " p prune" in foot
    assert (" x remove" in foot) == (page in ("resources", "node"))
    assert foot.endswith("? keys  q quit")


def test_more_is_offered_where_there_is_more() -> None:
    made = press(board(), "?")
    assert "PgDn more" in text(made, 80, 24)
    press(made, "end")
    assert "PgDn more" not in text(made, 80, 24)


def test_one_esc_leaves_a_plan_that_asks() -> None:
    jobs: list[Job] = []
    made = changing("plugins")
    made.start = jobs.append
    press(made, "p")
    result = Result((), "done", True)
    jobs[0].done(Proposal(SOCKET_CHANGES, (), (), "Remove?", "prune", lambda _: result))
    made.settled()
    assert "Type prune to agree" in text(made)
    press(made, "escape")
    assert made.prompt is None
    assert "Enter devices" in text(made)


def test_enter_where_nothing_lies_deeper_says_why() -> None:
    made = board("plugins")
    page = PAGES[3]
    assert made.facts is not None
    row = made.facts.rows("plugins", page.make)[0]._replace(endpoint="a.sock", resource=None)
    made.facts._rows["plugins"] = (row,)
    assert "a.sock lists no devices that the kubelet knows" in text(press(made, "enter"))
    assert len(made.sheets) == 1


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            ResourceState.GRACE,
            "its plugin is gone; the kubelet no longer lists its devices (Grace)",
        ),
        (ResourceState.EMPTY, "the kubelet knows no device of vendor.example/gpu (Empty)"),
    ],
)
def test_a_resource_without_devices_says_why(state: ResourceState, words: str) -> None:
    made = board()
    assert made.facts is not None
    row = made.facts.rows("resources", PAGES[0].make)[0]
    made.facts._rows["resources"] = (row._replace(resource="vendor.example/gpu", state=state),)
    made.facts._rows["devices"] = ()
    assert words in text(press(made, "enter"))
