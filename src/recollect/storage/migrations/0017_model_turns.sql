-- When each model may be asked next. Rows of the whole deployment, under the name * in place of a namespace. Unlogged,
-- and so in no backup: after a crash there is nothing to wait for.
create unlogged table model_turns (
    namespace text not null,
    model text not null,
    free_at timestamptz not null,
    primary key (namespace, model)
);

-- Requests under way. One whose process died counts no longer once it has expired.
create unlogged table model_requests (
    namespace text not null,
    model text not null,
    id uuid not null,
    expires_at timestamptz not null,
    primary key (namespace, model, id)
);

alter table model_turns enable row level security;
alter table model_turns force row level security;
create policy own_namespace on model_turns using (namespace = current_setting('recollect.namespace', true));

alter table model_requests enable row level security;
alter table model_requests force row level security;
create policy own_namespace on model_requests using (namespace = current_setting('recollect.namespace', true));
