import { bootstrap } from '@vendure/core';
import { fillCatalogue } from './catalogue';
import { config, shop } from './config';
import { Tasks } from './seckill/tasks';

async function main() {
    const app = await bootstrap(config);
    await fillCatalogue(app);
    shop.ready = true;
    app.get(Tasks).start();
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
