-- sessions
-- Whose some sessions are.
select id, user_id, agent_id from sessions where namespace = :namespace and id = any(:ids::text[]);

-- memories
-- Whose some memories are.
select id::text as id, user_id, agent_id from memories where namespace = :namespace and id = any(:ids::uuid[]);
