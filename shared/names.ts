// Names of zones and tenants, as storage and addresses carry them.
import { z } from 'zod';

export const zoneName = z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/);
export const tenantName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,62}$/);
