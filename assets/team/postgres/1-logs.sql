-- Logs of a team: each machine appends segments to a log of its own, and nobody changes what is there.
--
-- Members read the tables and write by functions alone, which run with the rights of their owner. See docs/teams.md for the
-- roles.

CREATE TABLE revdeck.segments (
    project text NOT NULL CHECK (length(project) BETWEEN 1 AND 200),
    log text NOT NULL CHECK (log ~ '^[a-z0-9]([a-z0-9-]{0,46}[a-z0-9])?$'),
    number integer NOT NULL CHECK (number > 0),
    -- Tells a segment from another one with its number, which a database that was restored from a backup gets again.
    tag text NOT NULL,
    content bytea NOT NULL CHECK (octet_length(content) BETWEEN 1 AND 16777216),
    written_by name NOT NULL,
    written_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project, log, number)
);

-- Appends segments to a log whose last segment is `base`, 0 for none. Returns the number of the new last segment; NULL if the
-- log has moved. A log belongs to the role that began it; all roles write the log of continuous integration.
CREATE FUNCTION revdeck.append_segments(in_project text, in_log text, base integer, contents bytea[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last_number integer;
    owner name;
BEGIN
    SELECT number, written_by INTO last_number, owner FROM revdeck.segments
        WHERE project = in_project AND log = in_log ORDER BY number DESC LIMIT 1;
    IF coalesce(last_number, 0) <> base THEN
        RETURN NULL;
    END IF;
    IF owner <> session_user AND in_log <> 'ci' THEN
        RAISE EXCEPTION 'the log % belongs to the role %, and this is %', in_log, owner, session_user
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    INSERT INTO revdeck.segments (project, log, number, tag, content, written_by)
        SELECT in_project, in_log, base + place, left(md5(random()::text || clock_timestamp()::text), 12), content,
            session_user
        FROM unnest(contents) WITH ORDINALITY AS added (content, place);
    PERFORM pg_notify('revdeck', 'log ' || in_log || ' ' || in_project);
    RETURN base + cardinality(contents);
EXCEPTION
    -- Another writer was faster.
    WHEN unique_violation THEN
        RETURN NULL;
END $$;

-- Returns number and tag of the last segment of each log. It looks at one row of each log, however many there are.
CREATE FUNCTION revdeck.list_logs(in_project text) RETURNS TABLE (log text, number integer, tag text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE names AS (
        (SELECT s.log FROM revdeck.segments s WHERE s.project = in_project ORDER BY s.log LIMIT 1)
        UNION ALL
        SELECT (SELECT s.log FROM revdeck.segments s WHERE s.project = in_project AND s.log > names.log
                ORDER BY s.log LIMIT 1)
        FROM names WHERE names.log IS NOT NULL
    )
    SELECT names.log, last.number, last.tag
    FROM names CROSS JOIN LATERAL (
        SELECT s.number, s.tag FROM revdeck.segments s
        WHERE s.project = in_project AND s.log = names.log ORDER BY s.number DESC LIMIT 1
    ) last
    WHERE names.log IS NOT NULL
$$;

REVOKE ALL ON FUNCTION revdeck.append_segments, revdeck.list_logs FROM PUBLIC;
