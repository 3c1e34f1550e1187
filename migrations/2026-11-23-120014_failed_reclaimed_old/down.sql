-- What the upgrade noted of reclaims before it.
UPDATE failed_request SET reclaimed_by = NULL;
