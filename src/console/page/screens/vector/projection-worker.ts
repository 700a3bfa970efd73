import { project } from './projection.js';

addEventListener('message', ({ data }: MessageEvent<readonly Float32Array[]>) => {
  postMessage(project(data));
});
