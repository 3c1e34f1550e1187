UPDATE failed_request SET reclaimed_by = NULL;
