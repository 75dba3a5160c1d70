// Installs Triton if it is missing, in a process of its own, with which its children (pip above all) end.
import process from 'node:process';
import { InstallProblem, installTriton } from '../../pool/triton/install.ts';
import type { InstallMessage } from '../install-triton.ts';
import { holdLifeline } from './lifeline.ts';

holdLifeline();
const tell = (told: InstallMessage) => new Promise((settle) => process.send?.(told, undefined, {}, settle));
try {
  const installed = await installTriton({
    folder: process.env.AURICLE_TRITON ?? '',
    say: (doing) => void tell({ doing }),
  });
  await tell({ installed });
} catch (error) {
  if (!(error instanceof InstallProblem)) throw error;
  await tell({ problem: error.message });
}
process.exit(0);
