-- What was asked of providers, by day (UTC), feature and model.
create table usage (
    namespace text not null,
    day date not null,
    feature text not null,
    model text not null,
    requests bigint not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    primary key (namespace, day, feature, model)
);

-- The budget of a day: tokens used and set aside, in one row, so that callers at once take turns.
create table usage_days (
    namespace text not null,
    day date not null,
    tokens bigint not null,
    primary key (namespace, day)
);

alter table usage enable row level security;
alter table usage force row level security;
create policy own_namespace on usage using (namespace = current_setting('recollect.namespace', true));

alter table usage_days enable row level security;
alter table usage_days force row level security;
create policy own_namespace on usage_days using (namespace = current_setting('recollect.namespace', true));
