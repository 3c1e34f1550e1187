// The words of drops: [English, Chinese].

export const dropWords = {
  drops: ['Drops', '组合活动'],
  drop: ['Drop', '组合活动'],
  'drops-words': ['A drop is sales that belong together, with one limit for each buyer over all of them.', '组合活动由若干活动组成，每位买家在其中合计限购。'],
  'no-drops': ['There is no drop yet.', '还没有组合活动。'],
  'drop-limit-each': ['{n} a buyer over all its sales', '所有活动合计每人 {n} 件'],
  'new-drop': ['New drop', '新建组合活动'],
  'drop-file': ['File', '文件'],
  'drop-text': ['The drop, as JSON', '组合活动（JSON）'],
  'drop-file-words': ['drop_id, title, limit, and sales with the fields of a new sale; “seckill drop create --help” has an example. All or nothing is created, as drafts.', '含 drop_id、title、limit 以及 sales（字段与新建活动相同）；示例见 seckill drop create --help。要么全部创建（草稿），要么都不创建。'],
  'drop-created': ['{drop} is created.', '已创建 {drop}。'],
  'drop-warm-title': ['Warm up all sales of {drop}?', '预热 {drop} 的所有活动？'],
  'drop-pause-title': ['Pause all sales of {drop}?', '暂停 {drop} 的所有活动？'],
  'drop-resume-title': ['Resume all sales of {drop}?', '恢复 {drop} 的所有活动？'],
  'drop-hide-title': ['Hide all sales of {drop} from buyers?', '对买家隐藏 {drop} 的所有活动？'],
  'drop-publish-title': ['Show all sales of {drop} to buyers?', '向买家发布 {drop} 的所有活动？'],
  'drop-each-words': ['It is done to one sale after the other; what failed is named, and can be repeated.', '逐个活动执行；失败的会逐一列出，可重复执行。'],
  'drop-close-title': ['Close {drop} for good?', '永久关闭 {drop}？'],
  'drop-close-words': ['All its sales end and are never opened again. What was accepted still becomes orders.', '所有活动都将结束，不能再打开；已受理的购买仍会成为订单。'],
  'drop-done': ['Done for all its sales.', '所有活动均已完成。'],
};
