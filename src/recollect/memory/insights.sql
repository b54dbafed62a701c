-- add
-- One insight, with the messages it was condensed from.
insert into insights (namespace, content, source_ids, fidelity, metadata)
values ($1, $2, $3::bigint[], $4, $5)
returning id, created_at;

-- find
-- Some insights by their ids, those above a fidelity.
select id, content, source_ids, fidelity, metadata, created_at
from insights
where namespace = $1 and id = any($2::bigint[]) and ($3::float8 is null or fidelity >= $3);

-- newest
-- Insights of a range of time and above a fidelity, newest first.
select id, content, source_ids, fidelity, metadata, created_at
from insights
where namespace = $1
  and ($3::float8 is null or fidelity >= $3)
  and ($4::timestamptz is null or created_at >= $4)
  and ($5::timestamptz is null or created_at <= $5)
order by created_at desc, id desc
limit $2;

-- remove
-- One insight.
delete from insights where namespace = $1 and id = $2 returning id;
