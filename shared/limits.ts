import { auditLimits } from './limits/audit.ts';
import { auditAccessLimits } from './limits/audit-access.ts';
import { auditKeysLimits } from './limits/audit-keys.ts';
import { auditPrivacyLimits } from './limits/audit-privacy.ts';
import { backOfficeLimits } from './limits/back-office.ts';
import { batchLimits } from './limits/batch.ts';
import { callLimits } from './limits/call.ts';
import { cliLimits } from './limits/cli.ts';
import { engineLimits } from './limits/engine.ts';
import { modelLimits } from './limits/model.ts';
import { modelBuildLimits } from './limits/model-build.ts';
import { modelLiveLimits } from './limits/model-live.ts';
import { outageLimits } from './limits/outage.ts';
import { poolLimits } from './limits/pool.ts';
import { projectLimits } from './limits/project.ts';
import { requestLimits } from './limits/request.ts';
import { sealLimits } from './limits/seal.ts';
import { streamLimits } from './limits/stream.ts';
import { streamAgentLimits } from './limits/stream-agent.ts';
import { streamClientLimits } from './limits/stream-client.ts';
import { tenantLimits } from './limits/tenant.ts';
import { uploadLimits } from './limits/upload.ts';
import { uploadFrontLimits } from './limits/upload-front.ts';
import { verifyLimits } from './limits/verify.ts';
import { workLimits } from './limits/work.ts';

/** Every bound of the system, by subject. Nothing else in the code decides how much is too much. */
export const limits = {
  ...requestLimits,
  ...poolLimits,
  ...sealLimits,
  ...workLimits,
  ...tenantLimits,
  ...engineLimits,
  ...streamLimits,
  ...streamAgentLimits,
  ...streamClientLimits,
  ...cliLimits,
  ...callLimits,
  ...uploadLimits,
  ...uploadFrontLimits,
  ...batchLimits,
  ...auditLimits,
  ...verifyLimits,
  ...auditAccessLimits,
  ...auditKeysLimits,
  ...auditPrivacyLimits,
  ...backOfficeLimits,
  ...projectLimits,
  ...outageLimits,
  ...modelBuildLimits,
  ...modelLimits,
  ...modelLiveLimits,
} as const;
