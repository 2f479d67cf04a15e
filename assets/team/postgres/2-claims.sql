-- Claims of reviews: while a machine reviews a change, others that are asked for an equivalent review wait for its result.
--
-- A claim is a lease by the clock of the database. Its machine renews it, by any connection; after a lost connection it holds
-- until it ends.

CREATE TABLE revdeck.claims (
    project text NOT NULL CHECK (length(project) BETWEEN 1 AND 200),
    review text NOT NULL CHECK (length(review) BETWEEN 1 AND 100),
    run text NOT NULL CHECK (length(run) BETWEEN 1 AND 60),
    machine text NOT NULL CHECK (length(machine) BETWEEN 1 AND 48),
    held_by name NOT NULL,
    ends_at timestamptz NOT NULL,
    PRIMARY KEY (project, review)
);

-- Claims a review for a run, or renews the run's claim, for some seconds. Returns who has the claim now.
CREATE FUNCTION revdeck.claim_review(in_project text, in_review text, in_run text, in_machine text, seconds integer)
RETURNS TABLE (run text, machine text, seconds_left double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF seconds NOT BETWEEN 1 AND 300 THEN
        RAISE EXCEPTION 'a claim lasts 1 to 300 seconds';
    END IF;
    DELETE FROM revdeck.claims old WHERE old.project = in_project AND old.ends_at < now() - interval '1 day';
    INSERT INTO revdeck.claims AS known (project, review, run, machine, held_by, ends_at)
        VALUES (in_project, in_review, in_run, in_machine, session_user,
            clock_timestamp() + make_interval(secs => seconds))
        ON CONFLICT (project, review) DO UPDATE
        SET run = excluded.run, machine = excluded.machine, held_by = excluded.held_by, ends_at = excluded.ends_at
        WHERE (known.run = excluded.run AND known.held_by = excluded.held_by) OR known.ends_at < clock_timestamp();
    RETURN QUERY SELECT known.run, known.machine, extract(epoch FROM known.ends_at - clock_timestamp())::double precision
        FROM revdeck.claims known WHERE known.project = in_project AND known.review = in_review;
END $$;

-- Ends the claims of a run that the same role has made.
CREATE FUNCTION revdeck.release_claims(in_project text, in_run text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM revdeck.claims WHERE project = in_project AND run = in_run AND held_by = session_user;
    IF FOUND THEN
        PERFORM pg_notify('revdeck', 'claim ' || in_run || ' ' || in_project);
    END IF;
END $$;

REVOKE ALL ON FUNCTION revdeck.claim_review, revdeck.release_claims FROM PUBLIC;
