-- What replaced a memory stands in that one's own history: a copy of it here would outlive being forgotten there.
alter table memory_history no force row level security;
update memory_history set new_memory = null where event = 'supersede';
alter table memory_history force row level security;

-- By these, a user's or a session's superseded memories are found without their histories.
create index memories_superseded_of_user on memories (namespace, user_id, id)
where superseded_by is not null and user_id is not null;
create index memories_superseded_in_session on memories (namespace, session_id, id)
where superseded_by is not null and session_id is not null;
