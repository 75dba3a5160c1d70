// Starts Triton and never stops it, to test the end of this process.
import { installTriton } from '../../infra/pool/triton/install.ts';
import { startTriton } from '../../infra/pool/triton/start.ts';

const [folder = '', repository = '', when = 'ready'] = process.argv.slice(2);
await startTriton({
  installed: await installTriton({ folder }),
  repository,
  onLog(text) {
    if (when === 'loading' && text.includes('loading: ')) process.send?.(when);
  },
});
process.send?.('ready');
