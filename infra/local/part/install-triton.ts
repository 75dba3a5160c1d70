// Installs Triton if it is missing, in a process of its own, with which its children (pip above all) end.
import process from 'node:process';
import { InstallProblem, installTriton } from '../../pool/triton/install.ts';
import type { InstallMessage } from '../install-triton.ts';
import { holdLifeline } from './lifeline.ts';

holdLifeline();
const send = (message: InstallMessage) => new Promise((settle) => process.send?.(message, undefined, {}, settle));
try {
  const installed = await installTriton({
    folder: process.env.AURICLE_TRITON ?? '',
    log: (doing) => void send({ doing }),
  });
  await send({ installed });
} catch (error) {
  if (!(error instanceof InstallProblem)) throw error;
  await send({ problem: error.message });
}
process.exit(0);
