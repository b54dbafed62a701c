-- The wall behind the limits of a key: whatever a statement asks for, a connection that is set to one user or agent sees
-- and writes only their memories. Not sessions: who names one of another must be told that it is taken. Not passages: the
-- planner takes more conditions there for fewer rows, and leaves the vector index unused.
-- In the one policy of the table, because Citus makes a restrictive policy a permissive one on its shards; and as a
-- case, because the planner would take plain comparisons for rare and expect next to no rows.
alter policy own_namespace on memories using (
    namespace = current_setting('recollect.namespace', true)
    and case
        when coalesce(current_setting('recollect.only_user', true), '') = ''
             and coalesce(current_setting('recollect.only_agent', true), '') = '' then true
        else coalesce(current_setting('recollect.only_user', true), '') in ('', user_id)
             and coalesce(current_setting('recollect.only_agent', true), '') in ('', agent_id)
    end
);
