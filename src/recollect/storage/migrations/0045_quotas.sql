-- How many requests a key may make in a minute and how much it may store in a day; null where the deployment decides,
-- 0 where it has no limit even if the deployment sets one.
alter table api_keys add column requests_per_minute bigint;
alter table api_keys add column rows_per_day bigint;
alter table api_keys add column bytes_per_day bigint;

-- What was used of quotas: of each key or user a row for the day, with rows and bytes, and one for the minute, with
-- requests. `since` is when that day or minute began; the next one begins anew in the same row.
create table quota_use (
    namespace text not null,
    -- A key or a user, by its id.
    kind text not null,
    subject text not null,
    period text not null,
    since timestamptz not null,
    requests bigint not null default 0,
    rows bigint not null default 0,
    bytes bigint not null default 0,
    primary key (namespace, kind, subject, period)
);

alter table quota_use enable row level security;
alter table quota_use force row level security;
create policy own_namespace on quota_use using (namespace = current_setting('recollect.namespace', true));
