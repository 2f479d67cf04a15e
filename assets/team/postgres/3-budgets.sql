-- Budget of a team for a day (UTC, by the clock of the database), and what was spent of it.
--
-- Before a request to a model, a machine reserves the most that the request may cost; with the answer it records what it cost.
-- Reservations of one project are made one after the other, so what is spent never exceeds the budget.

CREATE TABLE revdeck.budgets (
    project text PRIMARY KEY CHECK (length(project) BETWEEN 1 AND 200),
    day_cost double precision CHECK (day_cost >= 0),
    day_tokens bigint CHECK (day_tokens >= 0)
);

CREATE TABLE revdeck.spending (
    project text NOT NULL CHECK (length(project) BETWEEN 1 AND 200),
    day date NOT NULL,
    -- Unique for each request that is sent, also when it is sent again.
    request text NOT NULL CHECK (length(request) BETWEEN 1 AND 100),
    machine text NOT NULL CHECK (length(machine) BETWEEN 1 AND 48),
    paid_by name NOT NULL,
    cost double precision NOT NULL CHECK (cost >= 0 AND cost < 1e9),
    tokens bigint NOT NULL CHECK (tokens BETWEEN 0 AND 1000000000000),
    -- True once the answer is there. What was reserved for a request without an answer counts as spent.
    is_final boolean NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (project, day, request)
);

-- Sets the budget of a project; NULL for no limit. For owners.
CREATE FUNCTION revdeck.set_budget(in_project text, in_day_cost double precision, in_day_tokens bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO revdeck.budgets AS known (project, day_cost, day_tokens)
        VALUES (in_project, in_day_cost, in_day_tokens)
        ON CONFLICT (project) DO UPDATE SET day_cost = excluded.day_cost, day_tokens = excluded.day_tokens
$$;

-- Returns what was spent today, what is reserved for requests on their way, and the budget.
CREATE FUNCTION revdeck.read_budget(in_project text)
RETURNS TABLE (cost double precision, tokens bigint, waiting_cost double precision, waiting_tokens bigint,
    day_cost double precision, day_tokens bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    -- Nobody waits for an answer longer than this; then the machine has died.
    WITH rows AS (
        SELECT s.cost, s.tokens, NOT s.is_final AND s.at > clock_timestamp() - interval '15 minutes' AS is_waiting
        FROM revdeck.spending s
        WHERE s.project = in_project AND s.day = (clock_timestamp() AT TIME ZONE 'UTC')::date
    )
    SELECT coalesce(sum(rows.cost) FILTER (WHERE NOT rows.is_waiting), 0),
        coalesce(sum(rows.tokens) FILTER (WHERE NOT rows.is_waiting), 0)::bigint,
        coalesce(sum(rows.cost) FILTER (WHERE rows.is_waiting), 0),
        coalesce(sum(rows.tokens) FILTER (WHERE rows.is_waiting), 0)::bigint,
        (SELECT b.day_cost FROM revdeck.budgets b WHERE b.project = in_project),
        (SELECT b.day_tokens FROM revdeck.budgets b WHERE b.project = in_project)
    FROM rows
$$;

-- Reserves the most that a request may cost; a cost of NULL is not known. `answer` is `granted`, `wait` if requests on their way
-- may use up the rest, `unpriced` if there is a limit in US dollars and the cost is not known, or `refused`. A request that is
-- reserved already is granted again, because the first answer may have been lost.
CREATE FUNCTION revdeck.reserve(in_project text, in_machine text, in_request text, in_cost double precision, in_tokens bigint)
RETURNS TABLE (answer text, cost double precision, tokens bigint, day_cost double precision, day_tokens bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    today date;
    most double precision := coalesce(in_cost, 0);
    known record;
    said text;
BEGIN
    -- With another isolation, the sums would be those of before the lock.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'costs are reserved in transactions that are read committed';
    END IF;
    -- The row is the lock: only these functions can take it.
    INSERT INTO revdeck.budgets (project) VALUES (in_project) ON CONFLICT DO NOTHING;
    PERFORM FROM revdeck.budgets b WHERE b.project = in_project FOR UPDATE;
    today := (clock_timestamp() AT TIME ZONE 'UTC')::date;
    SELECT * INTO known FROM revdeck.read_budget(in_project);
    IF EXISTS (SELECT FROM revdeck.spending s WHERE s.project = in_project AND s.day = today AND s.request = in_request
            AND s.paid_by = session_user AND NOT s.is_final) THEN
        said := 'granted';
    ELSIF known.day_cost IS NOT NULL AND in_cost IS NULL THEN
        said := 'unpriced';
    ELSIF known.cost + most > coalesce(known.day_cost, 'infinity')
        OR known.tokens + in_tokens > coalesce(known.day_tokens, 9223372036854775807) THEN
        said := 'refused';
    ELSIF known.cost + known.waiting_cost + most > coalesce(known.day_cost, 'infinity')
        OR known.tokens + known.waiting_tokens + in_tokens > coalesce(known.day_tokens, 9223372036854775807) THEN
        said := 'wait';
    ELSE
        said := 'granted';
        DELETE FROM revdeck.spending s WHERE s.project = in_project AND s.day < today - 90;
        INSERT INTO revdeck.spending (project, day, request, machine, paid_by, cost, tokens, is_final, at)
            VALUES (in_project, today, in_request, in_machine, session_user, most, in_tokens, false, clock_timestamp());
    END IF;
    RETURN QUERY SELECT said, known.cost, known.tokens, known.day_cost, known.day_tokens;
END $$;

-- Records what an answer cost, in place of what the same role has reserved.
CREATE FUNCTION revdeck.settle(in_project text, in_request text, in_cost double precision, in_tokens bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    UPDATE revdeck.spending SET cost = in_cost, tokens = in_tokens, is_final = true
        WHERE project = in_project AND request = in_request AND paid_by = session_user AND NOT is_final
$$;

REVOKE ALL ON FUNCTION revdeck.set_budget, revdeck.read_budget, revdeck.reserve, revdeck.settle FROM PUBLIC;
