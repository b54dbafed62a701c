-- put
-- A checkpoint, in place of an earlier one of its id.
-- Audit checkpoint thread_id
insert into checkpoints (
    namespace, thread_id, checkpoint_ns, checkpoint_id, parent_id, user_id, type, body, versions, metadata
)
values (
    :namespace, :thread_id, :checkpoint_ns, :checkpoint_id, :parent_id, :user_id, :type, :body, :versions::text::jsonb,
    :metadata::text::jsonb
)
on conflict (namespace, thread_id, checkpoint_ns, checkpoint_id) do update
set parent_id = excluded.parent_id, type = excluded.type, body = excluded.body, versions = excluded.versions,
    metadata = excluded.metadata;

-- put_values
-- Values of channels; one that is stored already is the same.
insert into checkpoint_values (namespace, thread_id, checkpoint_ns, channel, version, type, body)
select :namespace, :thread_id::text, :checkpoint_ns::text, given.channel, given.version, given.type, given.body
from unnest(:channels::text[], :versions::text[], :types::text[], :bodies::bytea[]) as given (
    channel, version, type, body
)
on conflict (namespace, thread_id, checkpoint_ns, channel, version) do nothing;

-- add_writes
-- What a task wrote; what it wrote at the same place before stays.
-- Audit checkpoint thread_id
insert into checkpoint_writes (
    namespace, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, body
)
select :namespace, :thread_id::text, :checkpoint_ns::text, :checkpoint_id::text, :task_id::text, given.idx,
       :task_path::text, given.channel, given.type, given.body
from unnest(:places::integer[], :channels::text[], :types::text[], :bodies::bytea[]) as given (idx, channel, type, body)
on conflict (namespace, thread_id, checkpoint_ns, checkpoint_id, task_id, idx) do nothing;

-- put_writes
-- The same in place of what was there.
-- Audit checkpoint thread_id
insert into checkpoint_writes (
    namespace, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, body
)
select :namespace, :thread_id::text, :checkpoint_ns::text, :checkpoint_id::text, :task_id::text, given.idx,
       :task_path::text, given.channel, given.type, given.body
from unnest(:places::integer[], :channels::text[], :types::text[], :bodies::bytea[]) as given (idx, channel, type, body)
on conflict (namespace, thread_id, checkpoint_ns, checkpoint_id, task_id, idx) do update
set channel = excluded.channel, type = excluded.type, body = excluded.body;

-- newest
-- Checkpoints of a thread or of all, the newest first, each with the values of its channels and what tasks wrote to it.
-- Audit checkpoint thread_id
select own.thread_id, own.checkpoint_ns, own.checkpoint_id, own.parent_id, own.type, own.body, own.metadata,
       stored.channels, stored.types, stored.bodies, written.tasks, written.channels as written_channels,
       written.types as written_types, written.bodies as written_bodies
from (
    select checkpoints.thread_id, checkpoints.checkpoint_ns, checkpoints.checkpoint_id, checkpoints.parent_id,
           checkpoints.type, checkpoints.body, checkpoints.metadata, checkpoints.versions
    from checkpoints
    where checkpoints.namespace = :namespace
      and (:thread_id::text is null or checkpoints.thread_id = :thread_id)
      and (:checkpoint_ns::text is null or checkpoints.checkpoint_ns = :checkpoint_ns)
      and (:checkpoint_id::text is null or checkpoints.checkpoint_id = :checkpoint_id)
      and (:before::text is null or checkpoints.checkpoint_id < :before)
      and (:filter::text is null or checkpoints.metadata @> :filter::text::jsonb)
      and (:behind_id::text is null or (checkpoints.checkpoint_id, checkpoints.thread_id, checkpoints.checkpoint_ns)
           < (:behind_id, :behind_thread::text, :behind_ns::text))
    order by checkpoints.checkpoint_id desc, checkpoints.thread_id desc, checkpoints.checkpoint_ns desc
    limit :limit
) as own
cross join lateral (
    select array_agg(valued.channel) as channels, array_agg(valued.type) as types, array_agg(valued.body) as bodies
    from jsonb_each_text(own.versions) as version (channel, number)
    join checkpoint_values valued
        on valued.namespace = :namespace and valued.thread_id = own.thread_id
        and valued.checkpoint_ns = own.checkpoint_ns and valued.channel = version.channel
        and valued.version = version.number
) as stored
cross join lateral (
    select array_agg(writes.task_id order by writes.task_path, writes.task_id, writes.idx) as tasks,
           array_agg(writes.channel order by writes.task_path, writes.task_id, writes.idx) as channels,
           array_agg(writes.type order by writes.task_path, writes.task_id, writes.idx) as types,
           array_agg(writes.body order by writes.task_path, writes.task_id, writes.idx) as bodies
    from checkpoint_writes writes
    where writes.namespace = :namespace and writes.thread_id = own.thread_id
      and writes.checkpoint_ns = own.checkpoint_ns and writes.checkpoint_id = own.checkpoint_id
) as written
order by own.checkpoint_id desc, own.thread_id desc, own.checkpoint_ns desc;

-- with_deltas
-- Threads whose state is the sum of what was written since a snapshot: no checkpoint of theirs stands alone.
select distinct thread_id from checkpoints
where namespace = :namespace and thread_id = any(:thread_ids::text[])
  and metadata ? 'counters_since_delta_snapshot'
order by thread_id;

-- remove_older
-- Checkpoints of some threads that are not the newest of their kind.
-- Audit checkpoint thread_id
delete from checkpoints
where namespace = :namespace and thread_id = any(:thread_ids::text[])
  and exists (
      select 1 from checkpoints newer
      where newer.namespace = :namespace and newer.thread_id = checkpoints.thread_id
        and newer.checkpoint_ns = checkpoints.checkpoint_ns and newer.checkpoint_id > checkpoints.checkpoint_id
  )
returning thread_id, checkpoint_ns, checkpoint_id;

-- remove_runs
-- The checkpoints that some runs made.
-- Audit checkpoint thread_id
delete from checkpoints
where namespace = :namespace and metadata ->> 'run_id' = any(:run_ids::text[])
returning thread_id, checkpoint_ns, checkpoint_id;

-- remove_writes_of
-- What tasks wrote to checkpoints that are gone.
delete from checkpoint_writes
where namespace = :namespace
  and (thread_id, checkpoint_ns, checkpoint_id) in (
      select gone.thread_id, gone.checkpoint_ns, gone.checkpoint_id
      from unnest(:thread_ids::text[], :spaces::text[], :checkpoint_ids::text[]) as gone (
          thread_id, checkpoint_ns, checkpoint_id
      )
  );

-- remove_unused_values
-- Values in some threads that no checkpoint has any more.
delete from checkpoint_values
where namespace = :namespace and thread_id = any(:thread_ids::text[])
  and not exists (
      select 1 from checkpoints
      where checkpoints.namespace = :namespace and checkpoints.thread_id = checkpoint_values.thread_id
        and checkpoints.checkpoint_ns = checkpoint_values.checkpoint_ns
        and checkpoints.versions ->> checkpoint_values.channel = checkpoint_values.version
  );

-- remove_threads
-- All checkpoints of some threads.
-- Audit checkpoint thread_ids
delete from checkpoints
where namespace = :namespace and thread_id = any(:thread_ids::text[])
returning checkpoint_id;

-- remove_values
-- All values of some threads.
delete from checkpoint_values
where namespace = :namespace and thread_id = any(:thread_ids::text[])
returning version;

-- remove_writes
-- All that tasks wrote in some threads.
delete from checkpoint_writes
where namespace = :namespace and thread_id = any(:thread_ids::text[])
returning idx;

-- copy
-- The checkpoints of a thread, under another id.
-- Audit checkpoint target
insert into checkpoints (
    namespace, thread_id, checkpoint_ns, checkpoint_id, parent_id, user_id, type, body, versions, metadata, created_at
)
select :namespace, :target::text, checkpoint_ns, checkpoint_id, parent_id, user_id, type, body, versions, metadata,
       created_at
from checkpoints
where namespace = :namespace and thread_id = :source
on conflict (namespace, thread_id, checkpoint_ns, checkpoint_id) do nothing
returning checkpoint_id, user_id,
          octet_length(body) + octet_length(versions::text) + octet_length(metadata::text) as size;

-- copy_values
-- Its values.
insert into checkpoint_values (namespace, thread_id, checkpoint_ns, channel, version, type, body)
select :namespace, :target::text, checkpoint_ns, channel, version, type, body
from checkpoint_values
where namespace = :namespace and thread_id = :source
on conflict (namespace, thread_id, checkpoint_ns, channel, version) do nothing
returning octet_length(body) as size;

-- copy_writes
-- What tasks wrote in it.
insert into checkpoint_writes (
    namespace, thread_id, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, body
)
select :namespace, :target::text, checkpoint_ns, checkpoint_id, task_id, idx, task_path, channel, type, body
from checkpoint_writes
where namespace = :namespace and thread_id = :source
on conflict (namespace, thread_id, checkpoint_ns, checkpoint_id, task_id, idx) do nothing
returning octet_length(body) as size;

-- of_user
-- The threads of a user behind an id, in order.
select distinct thread_id from checkpoints
where namespace = :namespace and user_id = :user_id and user_id <> '' and thread_id > :behind
order by thread_id
limit :limit;

-- count
-- What there is of some threads.
select (select count(*) from checkpoints where namespace = :namespace and thread_id = any(:thread_ids::text[]))
           as checkpoints,
       (select count(*) from checkpoint_values where namespace = :namespace and thread_id = any(:thread_ids::text[]))
           as stored,
       (select count(*) from checkpoint_writes where namespace = :namespace and thread_id = any(:thread_ids::text[]))
           as writes;

-- page_checkpoints
-- Checkpoints.
-- Audit checkpoint thread_id
select (to_jsonb(r) - 'namespace')::text as record, r.thread_id, r.checkpoint_ns, r.checkpoint_id
from checkpoints r
where r.namespace = :namespace and (:user_id::text is null or r.user_id = :user_id)
  and (:after_thread_id::text is null or (r.thread_id, r.checkpoint_ns, r.checkpoint_id)
       > (:after_thread_id, :after_checkpoint_ns::text, :after_checkpoint_id::text))
order by r.thread_id, r.checkpoint_ns, r.checkpoint_id
limit :limit;

-- restore_checkpoints
-- Adds checkpoints that are not there.
insert into checkpoints
select * from jsonb_populate_recordset(null::checkpoints, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning thread_id, checkpoint_ns, checkpoint_id;

-- compare_checkpoints
-- Compares given records with the stored ones.
select given.thread_id, given.checkpoint_ns, given.checkpoint_id, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::checkpoints, :records::text::jsonb) as given
left join checkpoints stored
    on stored.namespace = :namespace and stored.thread_id = given.thread_id
    and stored.checkpoint_ns = given.checkpoint_ns and stored.checkpoint_id = given.checkpoint_id;

-- size_checkpoints
-- Rows up to a bound, along an index, to be counted.
select 1 as row from checkpoints where namespace = :namespace order by thread_id limit :limit;

-- page_checkpoint_values
-- Values of channels; those of a user are in threads of theirs.
-- Audit checkpoint thread_id
select (to_jsonb(r) - 'namespace')::text as record, r.thread_id, r.checkpoint_ns, r.channel, r.version
from checkpoint_values r
where r.namespace = :namespace
  and (:user_id::text is null or exists (
      select 1 from checkpoints
      where checkpoints.namespace = :namespace and checkpoints.thread_id = r.thread_id
        and checkpoints.user_id = :user_id
  ))
  and (:after_thread_id::text is null or (r.thread_id, r.checkpoint_ns, r.channel, r.version)
       > (:after_thread_id, :after_checkpoint_ns::text, :after_channel::text, :after_version::text))
order by r.thread_id, r.checkpoint_ns, r.channel, r.version
limit :limit;

-- restore_checkpoint_values
-- Adds values that are not there.
insert into checkpoint_values
select * from jsonb_populate_recordset(null::checkpoint_values, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning thread_id, checkpoint_ns, channel, version;

-- compare_checkpoint_values
-- Compares given records with the stored ones.
select given.thread_id, given.checkpoint_ns, given.channel, given.version, to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::checkpoint_values, :records::text::jsonb) as given
left join checkpoint_values stored
    on stored.namespace = :namespace and stored.thread_id = given.thread_id
    and stored.checkpoint_ns = given.checkpoint_ns and stored.channel = given.channel
    and stored.version = given.version;

-- page_checkpoint_writes
-- What tasks wrote; those of a user are in threads of theirs.
-- Audit checkpoint thread_id
select (to_jsonb(r) - 'namespace')::text as record, r.thread_id, r.checkpoint_ns, r.checkpoint_id, r.task_id, r.idx
from checkpoint_writes r
where r.namespace = :namespace
  and (:user_id::text is null or exists (
      select 1 from checkpoints
      where checkpoints.namespace = :namespace and checkpoints.thread_id = r.thread_id
        and checkpoints.user_id = :user_id
  ))
  and (:after_thread_id::text is null or (r.thread_id, r.checkpoint_ns, r.checkpoint_id, r.task_id, r.idx)
       > (:after_thread_id, :after_checkpoint_ns::text, :after_checkpoint_id::text, :after_task_id::text,
          :after_idx::integer))
order by r.thread_id, r.checkpoint_ns, r.checkpoint_id, r.task_id, r.idx
limit :limit;

-- restore_checkpoint_writes
-- Adds writes that are not there.
insert into checkpoint_writes
select * from jsonb_populate_recordset(null::checkpoint_writes, :records::text::jsonb) as given
where given.namespace = :namespace
on conflict do nothing
returning thread_id, checkpoint_ns, checkpoint_id, task_id, idx;

-- compare_checkpoint_writes
-- Compares given records with the stored ones.
select given.thread_id, given.checkpoint_ns, given.checkpoint_id, given.task_id, given.idx,
       to_jsonb(stored) = to_jsonb(given) as same
from jsonb_populate_recordset(null::checkpoint_writes, :records::text::jsonb) as given
left join checkpoint_writes stored
    on stored.namespace = :namespace and stored.thread_id = given.thread_id
    and stored.checkpoint_ns = given.checkpoint_ns and stored.checkpoint_id = given.checkpoint_id
    and stored.task_id = given.task_id and stored.idx = given.idx;
