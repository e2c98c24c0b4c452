"""Plans whose every text somebody else has chosen."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.plan import Action, Cause, FieldChange, Plan
from reconciler.api.problem import Problem, Source
from tests.golden.plans import CONFIG_MAP, HOSTILE, change

hostile_texts = st.sampled_from(HOSTILE) | st.text(max_size=40) | st.text("`@<>|\n:#*_[]()!&é\u202e", max_size=400)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    field = st.builds(FieldChange, path=hostile_texts, before=hostile_texts, after=hostile_texts)
    one = st.builds(
        change,
        st.sampled_from(Action),
        hostile_texts,
        st.just(CONFIG_MAP),
        hostile_texts,
        cause=st.sampled_from(Cause),
        held=st.none() | hostile_texts,
        fields=st.lists(field, max_size=4).map(tuple),
        source=st.builds(Source, hostile_texts, st.integers(0, 99)),
    )
    changes = draw(st.lists(one, max_size=6)) * draw(st.sampled_from([1, 1, 40]))
    problem = st.builds(Problem, source=st.builds(Source, hostile_texts), code=hostile_texts, message=hostile_texts)
    return Plan(
        base=draw(hostile_texts),
        head=draw(hostile_texts),
        changes=tuple(replace(found, cluster=f"{found.cluster}{index}") for index, found in enumerate(changes)),
        problems=tuple(draw(st.lists(problem, max_size=4))),
        is_complete=draw(st.booleans()),
        held_digest=draw(hostile_texts),
    )
