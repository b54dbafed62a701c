-- Which passages are of one item: each but the first of an item names the first by its id, so that searches count items
-- without reading passages. The first, and so every item of one passage, has null there.
alter table passage_words add column head bigint;
alter table passage_vectors add column head bigint;

alter table passages no force row level security;
alter table giants no force row level security;

-- An update writes a vector into every HNSW index again, far more slowly than an index is built. Those of namespaces
-- with such items go: maintenance builds them again, and until then searches scan.
do $$
declare
    giant record;
begin
    for giant in
        select namespace, index_name from giants
        where exists (select from passages where passages.namespace = giants.namespace and passages.part > 0)
    loop
        execute format('drop index if exists %I', giant.index_name);
        delete from giants where namespace = giant.namespace and index_name = giant.index_name;
    end loop;
end
$$;

update passage_words
set head = head.id
from passages rest
join passages head
    on head.namespace = rest.namespace and head.kind = rest.kind and head.item_id = rest.item_id and head.part = 0
where rest.part > 0 and passage_words.namespace = rest.namespace and passage_words.id = rest.id;

update passage_vectors
set head = words.head
from passage_words words
where words.head is not null and passage_vectors.namespace = words.namespace and passage_vectors.id = words.id;

alter table passages force row level security;
alter table giants force row level security;
