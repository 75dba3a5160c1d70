import { engineLimits } from './limits/engine.ts';
import { poolLimits } from './limits/pool.ts';
import { requestLimits } from './limits/request.ts';
import { sealLimits } from './limits/seal.ts';
import { tenantLimits } from './limits/tenant.ts';
import { workLimits } from './limits/work.ts';

/** Every bound of the system, by subject. Nothing else in the code decides how much is too much. */
export const limits = {
  ...requestLimits,
  ...poolLimits,
  ...sealLimits,
  ...workLimits,
  ...tenantLimits,
  ...engineLimits,
} as const;
