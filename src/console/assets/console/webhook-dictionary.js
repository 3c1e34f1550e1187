// The words about webhooks: [English, Chinese].

export const webhookWords = {
  webhooks: ['Webhooks', 'Webhook'],
  webhook: ['Webhook', 'Webhook'],
  'webhooks-words': ['Receivers of the events of orders. What a receiver does not take is tried for days; then it is dead, and a person sends it again.', '订单事件的接收方。接收方未收下的事件会重试数日，之后成为死投递，由人重新发送。'],
  'webhook-unconfigured': ['not configured: kept, not sent', '未配置：保留，不发送'],
  'webhook-waiting': ['Waiting', '等待'],
  'webhook-oldest': ['the oldest for {n} s', '最早的已等待 {n} 秒'],
  'webhook-dead': ['Dead', '已死'],
  'webhook-replay': ['Send dead ones again', '重新发送死投递'],
  'webhook-replay-title': ['Send {n} dead delivery to {name} again?|Send {n} dead deliveries to {name} again?', '向 {name} 重新发送 {n} 个死投递？'],
  'webhook-replay-words': ['They are sent at once, under the same ids: a receiver that has had one drops it.', '立即以相同的 id 发送；已收到过的接收方会丢弃。'],
  'act-webhook.replay': ['Send deliveries again', '重新发送投递'],
  'webhook-replayed': ['{n} delivery is sent again.|{n} deliveries are sent again.', '已重新发送 {n} 个投递。'],
};
