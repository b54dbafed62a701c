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

-- By these, whatever a user or a session ever held is found among the memories of others.
create index memory_history_by_user on memory_history (namespace, user_id, memory_id) where user_id is not null;
create index memory_history_by_session on memory_history (namespace, session_id, memory_id)
where session_id is not null;
