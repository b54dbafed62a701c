-- A message as the client that stored it has it, in JSON: as text, because jsonb would put keys into another order and
-- write numbers anew. No search reads it.
alter table messages add column payload text;
