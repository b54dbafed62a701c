-- reserve
-- Sets tokens aside if the day's budget allows; no row otherwise.
insert into usage_days (namespace, day, tokens)
values (:namespace, :day, :tokens)
on conflict (namespace, day) do update set tokens = usage_days.tokens + excluded.tokens
where usage_days.tokens + excluded.tokens <= :budget
returning tokens;

-- adjust
-- Makes a reservation what it turned out to be.
update usage_days set tokens = tokens + :tokens where namespace = :namespace and day = :day;

-- count
-- Adds a request to what is known of its feature and model.
insert into usage (namespace, day, feature, model, requests, input_tokens, output_tokens)
values (:namespace, :day, :feature, :model, 1, :input_tokens, :output_tokens)
on conflict (namespace, day, feature, model)
do update set requests = usage.requests + excluded.requests, input_tokens = usage.input_tokens + excluded.input_tokens,
              output_tokens = usage.output_tokens + excluded.output_tokens;

-- spent
-- How much of a day's budget is used or set aside.
select tokens from usage_days where namespace = :namespace and day = :day;

-- since
-- Usage by day, feature and model, the newest first.
select day, feature, model, requests, input_tokens, output_tokens
from usage
where namespace = :namespace and day >= :day
order by day desc, feature, model;
