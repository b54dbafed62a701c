-- Whose a memory is stands in its history, too: that outlives the memory, and goes when its user or session is forgotten.
alter table memory_history
    add column user_id text,
    add column session_id text;

alter table memories no force row level security;
alter table memory_history no force row level security;
update memory_history
set user_id = memories.user_id, session_id = memories.session_id
from memories
where memories.namespace = memory_history.namespace and memories.id = memory_history.memory_id;
alter table memories force row level security;
alter table memory_history force row level security;
