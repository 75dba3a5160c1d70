// `npm run test:install`: installs what the suites beyond npm need, so that they find it when they start.

import { setup as browser } from './browser/install.ts';
import { setup as chart } from './chart/install.ts';
import { setup as prometheus } from './chart/metrics/install.ts';
import { setup as clients } from './clients/install.ts';
import { setup as cloud } from './cloud/install.ts';
import { setup as formats } from './formats/install.ts';
import { setup as go } from './go/install.ts';
import { setup as image } from './image/install.ts';
import { setup as natural } from './natural.ts';
import { setup as triton } from './triton/install.ts';

const installs = [go, cloud, image, browser, formats, natural, triton, clients, chart, prometheus];
for (const install of installs) await install();
