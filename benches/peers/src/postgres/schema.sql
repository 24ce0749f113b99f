-- An item's total is spread among its slots; with one slot it is one row. Totals and workshops leave room in their pages, so
-- that an update stays within its page and touches no index.
CREATE TABLE likes (item text, user_id text, PRIMARY KEY (item, user_id));
CREATE TABLE totals (item text, slot int, total bigint NOT NULL, PRIMARY KEY (item, slot)) WITH (fillfactor = 50);
CREATE TABLE workshops (
    id text PRIMARY KEY,
    capacity int NOT NULL,
    reserved int NOT NULL,
    CHECK (reserved BETWEEN 0 AND capacity)
) WITH (fillfactor = 50);
CREATE TABLE attempts (
    workshop text,
    request text,
    seats int NOT NULL,
    accepted bool NOT NULL,
    reserved int NOT NULL,
    PRIMARY KEY (workshop, request)
);

-- Takes seats in one transaction, which is the caller's statement. A request id that comes again gets its first decision. The
-- row of the workshop is locked only where seats are taken; a full workshop is only read.
CREATE FUNCTION reserve(a_workshop text, a_request text, a_seats int, default_capacity int)
RETURNS TABLE (seats int, accepted bool, capacity int, reserved int, replayed bool)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    the_capacity int;
    the_reserved int;
    fits bool;
BEGIN
    LOOP
        SELECT w.capacity INTO the_capacity FROM workshops w WHERE w.id = a_workshop;
        EXIT WHEN FOUND;
        INSERT INTO workshops VALUES (a_workshop, default_capacity, 0) ON CONFLICT DO NOTHING;
    END LOOP;
    RETURN QUERY SELECT a.seats, a.accepted, the_capacity, a.reserved, true FROM attempts a
        WHERE a.workshop = a_workshop AND a.request = a_request;
    IF FOUND THEN RETURN; END IF;

    UPDATE workshops w SET reserved = w.reserved + a_seats
        WHERE w.id = a_workshop AND w.reserved + a_seats <= w.capacity
        RETURNING w.reserved INTO the_reserved;
    fits := FOUND;
    IF NOT fits THEN
        SELECT w.reserved INTO the_reserved FROM workshops w WHERE w.id = a_workshop;
    END IF;
    INSERT INTO attempts VALUES (a_workshop, a_request, a_seats, fits, the_reserved) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        RETURN QUERY SELECT a_seats, fits, the_capacity, the_reserved, false;
        RETURN;
    END IF;
    -- The same id was decided in between: nothing is taken for it again.
    IF fits THEN
        UPDATE workshops w SET reserved = w.reserved - a_seats WHERE w.id = a_workshop;
    END IF;
    RETURN QUERY SELECT a.seats, a.accepted, the_capacity, a.reserved, true FROM attempts a
        WHERE a.workshop = a_workshop AND a.request = a_request;
END $$;
