-- passages
-- Passages up to a bound, along an index, as everything here.
select 1 as row from passages where namespace = :namespace order by id limit :limit;

-- vectors
-- Vectors.
select 1 as row from passage_vectors where namespace = :namespace order by id limit :limit;

-- minute
-- Messages of the last minute.
select 1 as row from messages where namespace = :namespace and created_at between now() - interval '1 minute' and now()
order by created_at limit :limit;

-- hour
-- Messages of the last hour.
select 1 as row from messages where namespace = :namespace and created_at between now() - interval '1 hour' and now()
order by created_at limit :limit;

-- day
-- Messages of the last day.
select 1 as row from messages where namespace = :namespace and created_at between now() - interval '1 day' and now()
order by created_at limit :limit;

-- keys
-- Keys of applications that are in force.
select 1 as row from api_keys
where namespace = :namespace and user_id is null and browser_of is null and revoked_at is null order by id limit :limit;

-- users
-- Keys of users that are in force.
select 1 as row from api_keys
where namespace = :namespace and user_id is not null and revoked_at is null order by user_id limit :limit;
