-- counts
-- How many there are of each kind, each up to a bound and along an index. The order is that of the names in sizes.py.
select count(*) as rows from (select from messages where namespace = :namespace order by created_at limit :limit)
    as some_of_them
union all
select count(*) from (select from sessions where namespace = :namespace order by id limit :limit) as some_of_them
union all
select count(*) from (select from documents where namespace = :namespace order by created_at desc limit :limit) as
    some_of_them
union all
select count(*) from (
    select from memories where namespace = :namespace and superseded_by is null order by created_at desc limit :limit
) as some_of_them
union all
select count(*) from (select from insights where namespace = :namespace order by id limit :limit) as some_of_them
union all
select count(*) from (select from episodes where namespace = :namespace order by id limit :limit) as some_of_them
union all
select count(*) from (select from working_items where namespace = :namespace order by id limit :limit) as some_of_them
union all
select count(*) from (select from resources where namespace = :namespace order by id limit :limit) as some_of_them
union all
select count(*) from (select from graph_nodes where namespace = :namespace order by id limit :limit) as some_of_them
union all
select count(*) from (select from graph_edges where namespace = :namespace order by id limit :limit) as some_of_them
union all
select count(*) from (select from passages where namespace = :namespace order by id limit :limit) as some_of_them
union all
select count(*) from (select from passage_vectors where namespace = :namespace order by id limit :limit) as some_of_them
union all
select count(*) from (
    select from messages where namespace = :namespace and created_at between now() - interval '1 minute' and now()
    order by created_at limit :limit
) as some_of_them
union all
select count(*) from (
    select from messages where namespace = :namespace and created_at between now() - interval '1 hour' and now()
    order by created_at limit :limit
) as some_of_them
union all
select count(*) from (
    select from messages where namespace = :namespace and created_at between now() - interval '1 day' and now()
    order by created_at limit :limit
) as some_of_them
union all
select count(*) from (
    select from api_keys
    where namespace = :namespace and user_id is null and revoked_at is null order by id limit :limit
) as some_of_them
union all
select count(*) from (
    select from api_keys
    where namespace = :namespace and user_id is not null and revoked_at is null order by user_id limit :limit
) as some_of_them;
