-- Short-term memory is a view of the log: the window of a session begins at window_start, behind the summary of all
-- that was said before. What the session does not set for itself is null and follows the deployment.
alter table sessions
    add column window_start bigint not null default 0,
    add column window_strategy text,
    add column window_max_messages integer,
    add column window_max_tokens integer;

-- Each compaction leaves one summary of everything before the position `until`, and moves the window's start there.
create table summaries (
    namespace text not null,
    session_id text not null,
    until bigint not null,
    id uuid not null,
    content text not null,
    metadata jsonb not null,
    created_at timestamptz not null,
    primary key (namespace, session_id, until),
    foreign key (namespace, session_id) references sessions (namespace, id) on delete cascade
);

alter table summaries enable row level security;
alter table summaries force row level security;
create policy own_namespace on summaries using (namespace = current_setting('recollect.namespace', true));
