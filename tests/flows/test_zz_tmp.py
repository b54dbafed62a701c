import pytest
from recollect.memory.graph import Graph
from recollect.memory.passages import Passages, _Sql
from recollect.memory import passages as pm, memories as mm, judging as jm
from recollect.memory.windows import Windows
from recollect.storage.sql import Query
from tests.flows import test_forget_proof as proof
async def nothing(self,*a,**k): return 0
NOOP="select 1 from sessions where namespace=$1 and $2::{}[] is null"
MUT={
 "unlink": lambda m: m.setattr(Graph,"unlink",nothing),
 "terms": lambda m: m.setattr(pm._Sql,"remove_unused_terms",Query("x",NOOP.format("int"))),
 "words": lambda m: m.setattr(pm._Sql,"remove_words",Query("x",NOOP.format("bigint"))),
 "vectors": lambda m: m.setattr(pm._Sql,"remove_vectors",Query("x",NOOP.format("bigint"))),
 "history": lambda m: m.setattr(mm._Sql,"erase_history",Query("x",NOOP.format("uuid"))),
 "empty": lambda m: m.setattr(jm._Sql,"remove_empty",Query("x",NOOP.format("bigint"))),
}
@pytest.mark.parametrize("pooling",["session"],indirect=True)
@pytest.mark.parametrize("m",MUT)
async def test_mut(engine, namespace, monkeypatch, m):
    MUT[m](monkeypatch)
    with pytest.raises(AssertionError):
        await proof.test_nothing_of_a_user_is_left_in_any_table_and_others_keep_every_row(engine, namespace, True)
